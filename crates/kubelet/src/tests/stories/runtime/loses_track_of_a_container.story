The runtime does not know any more how a container exited: it is stopped and restarted

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ends 5s after SIGTERM
at 20s  runtime loses track of web
at 90s  runtime finds web again
until 100s
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
00:20.0 then  runtime loses track of web
01:06.6 why   stops container web: the runtime lost track of it
01:06.6 why   starts container web: the runtime lost track of it
01:06.6 state Running: web ContainerStatusUnknown(137)
01:06.6 cond  Ready False, ContainersNotReady: containers with unready status: [web]
01:06.6 event Normal Killing web: Container web is in unknown state, try killing it before restart
01:06.6 call  StopContainer web#0, grace 30 s
01:06.6 proc  web#0 gets SIGTERM
01:11.6 proc  web#0 exits 143 (Error)
01:11.6 call  CreateContainer web#1
01:11.6 call  StartContainer web#1
01:11.6 why   stops container web: a newer instance took its place
01:11.6 state Running: web Running x1
01:11.6 cond  Ready True
01:11.6 event Normal Killing web: Stopping container web
01:11.6 call  StopContainer web#0, grace 30 s
01:12.6 event Normal Killing web: Stopping container web
01:12.6 call  StopContainer web#0, grace 30 s
01:14.6 event Normal Killing web: Stopping container web
01:14.6 call  StopContainer web#0, grace 30 s
01:18.6 event Normal Killing web: Stopping container web
01:18.6 call  StopContainer web#0, grace 30 s
01:26.6 event Normal Killing web: Stopping container web
01:26.6 call  StopContainer web#0, grace 30 s
01:30.0 then  runtime finds web again
01:36.6 event Normal Killing web: Stopping container web
01:36.6 call  StopContainer web#0, grace 30 s
