The runtime restarts: containers keep running, and so does the agent

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  runtime goes down
at 30s  runtime comes back
until 60s
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
00:20.0 then  runtime goes down
00:30.0 then  runtime comes back
