The image of one container is edited: only that one restarts, in the same sandbox

pod shop
  containers:
  - {name: web, image: "app:1"}
  - {name: db, image: "app:1"}

first  container web: runs, ends 4s after SIGTERM with 0
at 20s  edit: {name: web, image: "app:1"} -> {name: web, image: "app:2"}
until 30s
---
00:00.0 state Pending: db ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 why   starts container db: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  CreateContainer db#0
00:00.0 call  StartContainer db#0
00:00.0 why   everything runs as specified
00:00.0 state Running: db Running, web Running
00:00.0 cond  Ready True
00:20.0 then  edit: {name: web, image: "app:1"} -> {name: web, image: "app:2"}
00:20.0 why   stops container web: its definition changed
00:20.0 why   starts container web: its definition changed
00:20.0 event Normal Killing web: Container web definition changed, will be restarted
00:20.0 call  StopContainer web#0, grace 30 s
00:20.0 proc  web#0 gets SIGTERM
00:24.0 proc  web#0 exits 0 (Completed)
00:24.0 call  CreateContainer web#1
00:24.0 call  StartContainer web#1
00:24.0 why   everything runs as specified
00:24.0 state Running: db Running, web Running x1
