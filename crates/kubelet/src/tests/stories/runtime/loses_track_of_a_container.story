The runtime does not know any more what became of a container: it is ended and started again

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ends 5s after SIGTERM
at 20s  runtime loses track of web
at 25s  runtime finds web again
until 40s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   what runs is what is wanted
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:20.0 then  runtime loses track of web
00:21.0 why   stops container web: the runtime lost track of it
00:21.0 why   starts container web: the runtime lost track of it
00:21.0 state Running: web ContainerStatusUnknown(137)
00:21.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:21.0 event Normal Killing web: Container web is in unknown state, try killing it before restart
00:21.0 call  StopContainer web#0, grace 30 s
00:21.0 proc  web#0 gets SIGTERM
00:25.0 then  runtime finds web again
00:26.0 proc  web#0 exits 143 (Error)
00:26.0 call  CreateContainer web#1
00:26.0 call  StartContainer web#1
00:26.0 why   what runs is what is wanted
00:26.0 state Running: web Running x1
00:26.0 cond  Ready True
