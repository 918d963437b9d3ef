The agent stops gracefully: a start that is in flight completes first

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime takes 3s for StartContainer
at 2s  agent stops
at 10s  agent starts
until 20s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:02.0 then  agent stops
00:03.0 call  StartContainer web#0 took 3 s
00:03.0 why   everything runs as specified
00:03.0 state Running: web Running
00:03.0 cond  Ready True
00:10.0 then  agent starts
00:10.0 why   everything runs as specified
