The agent starts while the runtime is down: pods keep their last status until the runtime is back

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  agent dies
at 21s  runtime goes down
at 25s  agent starts
at 26s  container web exits 1
at 40s  runtime comes back
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
00:20.0 then  agent dies
00:21.0 then  runtime goes down
00:25.0 then  agent starts
00:26.0 then  container web exits 1
00:26.0 proc  web#0 exits 1 (Error)
00:40.0 then  runtime comes back
00:41.3 why   starts container web: it exited with code 1
00:41.3 state Running: web Error(1)
00:41.3 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:41.3 call  CreateContainer web#1
00:41.3 call  StartContainer web#1
00:41.3 why   everything runs as specified
00:41.3 state Running: web Running x1
00:41.3 cond  Ready True
