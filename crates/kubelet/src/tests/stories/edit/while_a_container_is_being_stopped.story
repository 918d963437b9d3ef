A container is edited again while it is being stopped: only the last image is started

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ends 10s after SIGTERM
first  image app:3 is there
at 20s  edit: app:1 -> app:2
at 25s  edit: app:2 -> app:3
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
00:20.0 then  edit: app:1 -> app:2
00:20.0 why   stops container web: its definition changed
00:20.0 why   starts container web: its definition changed
00:20.0 event Normal Killing web: Container web definition changed, will be restarted
00:20.0 call  StopContainer web#0, grace 30 s
00:20.0 proc  web#0 gets SIGTERM
00:25.0 then  edit: app:2 -> app:3
00:30.0 proc  web#0 exits 143 (Error)
00:30.0 state Running: web Error(143)
00:30.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:30.0 call  CreateContainer web#1
00:30.0 call  StartContainer web#1
00:30.0 why   everything runs as specified
00:30.0 state Running: web Running x1
00:30.0 cond  Ready True
