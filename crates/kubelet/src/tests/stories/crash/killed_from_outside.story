A process is killed on the node: its container restarts, the others are left alone

pod shop
  containers:
  - {name: web, image: "app:1"}
  - {name: db, image: "app:1"}

at 30s  container db exits 137
until 40s
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
00:30.0 then  container db exits 137
00:30.0 proc  db#0 exits 137 (Error)
00:30.0 why   starts container db: it exited with code 137
00:30.0 state Running: db Error(137), web Running
00:30.0 cond  Ready False, ContainersNotReady: containers with unready status: [db]
00:30.0 call  CreateContainer db#1
00:30.0 call  StartContainer db#1
00:30.0 why   everything runs as specified
00:30.0 state Running: db Running x1, web Running
00:30.0 cond  Ready True
