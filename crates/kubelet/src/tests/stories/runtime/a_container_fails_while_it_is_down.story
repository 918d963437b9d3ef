A container fails while the runtime is down: it restarts when the runtime is back

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  runtime goes down
at 25s  container web exits 1
at 60s  runtime comes back
until 80s
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
00:25.0 then  container web exits 1
00:25.0 proc  web#0 exits 1 (Error)
01:00.0 then  runtime comes back
01:01.3 why   starts container web: it exited with code 1
01:01.3 state Running: web Error(1)
01:01.3 cond  Ready False, ContainersNotReady: containers with unready status: [web]
01:01.3 call  CreateContainer web#1
01:01.3 call  StartContainer web#1
01:01.3 why   everything runs as specified
01:01.3 state Running: web Running x1
01:01.3 cond  Ready True
