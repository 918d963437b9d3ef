The agent dies between creating a container and starting it: the next agent starts the same one

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime hangs in StartContainer of web
at 5s  agent dies
at 6s  runtime goes on
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
00:05.0 then  agent dies
00:05.0 call  StartContainer web#0 was given up
00:06.0 then  runtime goes on
00:10.0 then  agent starts
00:10.0 why   starts container web: web#0 was created but not started
00:10.0 state Pending: web Waiting
00:10.0 call  StartContainer web#0
00:10.0 why   everything runs as specified
00:10.0 state Running: web Running
00:10.0 cond  Ready True
