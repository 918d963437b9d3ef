A pod of the same name and another UID waits until the old one is gone

pod web {uid: old}
  containers:
  - {name: web, image: "app:1"}

pod web as new later {uid: new}
  containers:
  - {name: web, image: "app:2"}

first  container web: runs, ends 10s after SIGTERM
at 20s  manifest of new is put
until 40s
---
00:00.0 state [web] Pending: web ContainerCreating
00:00.0 why   [web] the pod has no sandbox
00:00.0 call  [web] RunPodSandbox 0
00:00.0 why   [web] starts container web: it has not run yet
00:00.0 cond  [web] PodReadyToStartContainers True
00:00.0 call  [web] CreateContainer web#0
00:00.0 call  [web] StartContainer web#0
00:00.0 why   [web] everything runs as specified
00:00.0 state [web] Running: web Running
00:00.0 cond  [web] Ready True
00:20.0 then  manifest of new is put
00:20.0 why   [web] no source defines the pod any more
00:20.0 why   [web] stops container web: the pod terminates
00:20.0 state [web] Running, ends within 30 s: web Running
00:20.0 event [web] Normal Killing web: Stopping container web
00:20.0 call  [web] StopContainer web#0, grace 30 s
00:20.0 proc  [web] web#0 gets SIGTERM
00:30.0 proc  [web] web#0 exits 143 (Error)
00:30.0 call  [web] StopPodSandbox 0
00:30.0 state [web] Running, ends within 30 s: web Error(143)
00:30.0 cond  [web] PodReadyToStartContainers False
00:30.0 cond  [web] Ready False, ContainersNotReady: containers with unready status: [web]
00:30.0 call  [web] RemoveContainer web#0
00:30.0 call  [web] RemovePodSandbox 0
00:30.0 gone  [web] nothing is left of the pod
00:30.0 why   [new] the pod has no sandbox
00:30.0 state [new] Pending: web ContainerCreating
00:30.0 call  [new] RunPodSandbox 0
00:30.0 why   [new] starts container web: it has not run yet
00:30.0 cond  [new] PodReadyToStartContainers True
00:30.0 call  [new] CreateContainer web#0
00:30.0 call  [new] StartContainer web#0
00:30.0 why   [new] everything runs as specified
00:30.0 state [new] Running: web Running
00:30.0 cond  [new] Ready True
