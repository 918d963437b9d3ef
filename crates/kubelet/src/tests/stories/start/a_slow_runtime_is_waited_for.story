A slow start is waited for; nothing is done twice

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime takes 20s for RunPodSandbox
first  runtime takes 30s for StartContainer
until 70s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:20.0 call  RunPodSandbox 0 took 20 s
00:20.0 why   starts container web: it has not run yet
00:20.0 cond  PodReadyToStartContainers True
00:20.0 call  CreateContainer web#0
00:20.0 call  StartContainer web#0
00:50.0 call  StartContainer web#0 took 30 s
00:50.0 why   everything runs as specified
00:50.0 state Running: web Running
00:50.0 cond  Ready True
