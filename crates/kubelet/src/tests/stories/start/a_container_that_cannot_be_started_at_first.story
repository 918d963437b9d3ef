A container can't be started at first; the one beside it is not held up

pod shop
  containers:
  - {name: broken, image: "app:1"}
  - {name: web, image: "app:1"}

first  container broken: can't be started: exec: "servr": permission denied; then runs
until 10s
---
00:00.0 state Pending: broken ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container broken: it has not run yet
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer broken#0
00:00.0 call  StartContainer broken#0
00:00.0 call  StartContainer broken#0 failed: StartContainer: exec: "servr": permission denied
00:00.0 event Warning Failed broken: Error: StartContainer: exec: "servr": permission denied
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   container broken is in back-off until 00:01.0
00:00.0 state Running: broken RunContainerError after StartError(128), web Running
00:01.0 why   starts container broken: it exited with code 128
00:01.0 call  CreateContainer broken#1
00:01.0 call  StartContainer broken#1
00:01.0 why   everything runs as specified
00:01.0 state Running: broken Running x1, web Running
00:01.0 cond  Ready True
