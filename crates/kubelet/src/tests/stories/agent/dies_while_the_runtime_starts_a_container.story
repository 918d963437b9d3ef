The agent dies while the runtime starts a container, and the runtime completes the start

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime finishes abandoned calls
first  runtime takes 10s for StartContainer
at 4s  agent dies
at 20s  agent starts
until 40s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:04.0 then  agent dies
00:04.0 call  StartContainer web#0 was given up
00:05.0 proc  web#0 starts
00:20.0 then  agent starts
00:20.0 why   everything runs as specified
00:20.0 state Running: web Running
00:20.0 cond  Ready True
