A pod starts, and is removed with its manifest

SIGTERM first; the container has its grace to end.

pod web
  terminationGracePeriodSeconds: 10
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ends 3s after SIGTERM with 0
at 20s  manifest is removed
until 30s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:20.0 then  manifest is removed
00:20.0 why   no source defines the pod any more
00:20.0 why   stops container web: the pod terminates
00:20.0 state Running, ends within 10 s: web Running
00:20.0 event Normal Killing web: Stopping container web
00:20.0 call  StopContainer web#0, grace 10 s
00:20.0 proc  web#0 gets SIGTERM
00:23.0 proc  web#0 exits 0 (Completed)
00:23.0 call  StopPodSandbox 0
00:23.0 state Running, ends within 10 s: web Completed(0)
00:23.0 cond  PodReadyToStartContainers False
00:23.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:23.0 call  RemoveContainer web#0
00:23.0 call  RemovePodSandbox 0
00:23.0 gone  nothing is left of the pod
