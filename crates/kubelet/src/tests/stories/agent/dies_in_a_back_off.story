The agent dies during a back-off: the next agent continues it

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: exits 1 after 1s; then exits 1 after 1s; then exits 1 after 1s; then runs
at 20s  agent dies
at 24s  agent starts
until 50s
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
00:01.0 proc  web#0 exits 1 (Error)
00:01.0 why   starts container web: it exited with code 1
00:01.0 state Running: web Error(1)
00:01.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:01.0 call  CreateContainer web#1
00:01.0 call  StartContainer web#1
00:01.0 why   everything runs as specified
00:01.0 state Running: web Running x1
00:01.0 cond  Ready True
00:02.0 proc  web#1 exits 1 (Error)
00:02.0 why   container web is in back-off until 00:12.0
00:02.0 why   removes a dead container
00:02.0 state Running: web CrashLoopBackOff x1 after Error(1)
00:02.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:02.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:02.0 call  RemoveContainer web#0
00:12.0 why   starts container web: it exited with code 1
00:12.0 call  CreateContainer web#2
00:12.0 call  StartContainer web#2
00:12.0 why   everything runs as specified
00:12.0 state Running: web Running x2
00:12.0 cond  Ready True
00:13.0 proc  web#2 exits 1 (Error)
00:13.0 why   container web is in back-off until 00:33.0
00:13.0 why   removes a dead container
00:13.0 state Running: web CrashLoopBackOff x2 after Error(1)
00:13.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:13.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:13.0 call  RemoveContainer web#1
00:20.0 then  agent dies
00:24.0 then  agent starts
00:24.0 why   container web is in back-off until 00:33.0
00:33.0 why   starts container web: it exited with code 1
00:33.0 call  CreateContainer web#3
00:33.0 call  StartContainer web#3
00:33.0 why   everything runs as specified
00:33.0 state Running: web Running x3
00:33.0 cond  Ready True
