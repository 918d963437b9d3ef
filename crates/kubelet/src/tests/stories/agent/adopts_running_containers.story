The agent is killed and another one starts: no container restarts or becomes unready

pod web
  containers:
  - {name: web, image: "app:1"}
  - {name: log, image: "app:1"}

at 20s  agent dies
at 30s  agent starts
until 60s
---
00:00.0 state Pending: log ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 why   starts container log: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  CreateContainer log#0
00:00.0 call  StartContainer log#0
00:00.0 why   everything runs as specified
00:00.0 state Running: log Running, web Running
00:00.0 cond  Ready True
00:20.0 then  agent dies
00:30.0 then  agent starts
00:30.0 why   everything runs as specified
