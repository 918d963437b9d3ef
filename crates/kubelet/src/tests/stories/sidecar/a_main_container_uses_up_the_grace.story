A container that ignores SIGTERM uses up the grace period: the sidecar after it has what is left

pod web
  terminationGracePeriodSeconds: 10
  initContainers:
  - {name: mesh, image: "app:1", restartPolicy: Always}
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ignores SIGTERM
first  container mesh: runs, ignores SIGTERM
at 20s  manifest is removed
until 40s
---
00:00.0 state Pending: mesh PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   starts container web: it has not run yet
00:00.0 state Pending: mesh Running, web PodInitializing
00:00.0 cond  Initialized True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: mesh Running, web Running
00:00.0 cond  Ready True
00:20.0 then  manifest is removed
00:20.0 why   no source defines the pod any more
00:20.0 why   stops container web: the pod terminates
00:20.0 why   stops container mesh: the pod terminates
00:20.0 state Running, ends within 10 s: mesh Running, web Running
00:20.0 event Normal Killing web: Stopping container web
00:20.0 event Normal Killing mesh: Stopping container mesh
00:20.0 call  StopContainer web#0, grace 10 s
00:20.0 proc  web#0 gets SIGTERM
00:30.0 proc  web#0 exits 137 (Error)
00:30.0 call  StopContainer mesh#0, grace 2 s
00:30.0 proc  mesh#0 gets SIGTERM
00:32.0 proc  mesh#0 exits 137 (Error)
00:32.0 call  StopPodSandbox 0
00:32.0 state Running, ends within 10 s: mesh Error(137), web Error(137)
00:32.0 cond  PodReadyToStartContainers False
00:32.0 cond  Ready False, ContainersNotReady: containers with unready status: [mesh web]
00:32.0 call  RemoveContainer web#0
00:32.0 call  RemoveContainer mesh#0
00:32.0 call  RemovePodSandbox 0
00:32.0 gone  nothing is left of the pod
