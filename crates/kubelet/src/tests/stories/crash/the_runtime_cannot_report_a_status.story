The status of a container can't be read for a while: nothing is decided in the meantime

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  runtime fails ContainerStatus: input/output error
at 21s  container web exits 1
at 40s  runtime works again
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
00:20.0 then  runtime fails ContainerStatus: input/output error
00:21.0 then  container web exits 1
00:21.0 proc  web#0 exits 1 (Error)
00:40.0 then  runtime works again
00:42.3 why   starts container web: it exited with code 1
00:42.3 state Running: web Error(1)
00:42.3 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:42.3 call  CreateContainer web#1
00:42.3 call  StartContainer web#1
00:42.3 why   everything runs as specified
00:42.3 state Running: web Running x1
00:42.3 cond  Ready True
