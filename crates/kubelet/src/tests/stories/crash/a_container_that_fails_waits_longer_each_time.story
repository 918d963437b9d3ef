A container that fails restarts at once, and then with a back-off that doubles

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: exits 1 after 2s
until 90s
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
00:02.0 proc  web#0 exits 1 (Error)
00:02.0 why   starts container web: it exited with code 1
00:02.0 state Running: web Error(1)
00:02.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:02.0 call  CreateContainer web#1
00:02.0 call  StartContainer web#1
00:02.0 why   everything runs as specified
00:02.0 state Running: web Running x1
00:02.0 cond  Ready True
00:04.0 proc  web#1 exits 1 (Error)
00:04.0 why   container web is in back-off until 00:14.0
00:04.0 why   removes a dead container
00:04.0 state Running: web CrashLoopBackOff x1 after Error(1)
00:04.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:04.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:04.0 call  RemoveContainer web#0
00:14.0 why   starts container web: it exited with code 1
00:14.0 call  CreateContainer web#2
00:14.0 call  StartContainer web#2
00:14.0 why   everything runs as specified
00:14.0 state Running: web Running x2
00:14.0 cond  Ready True
00:16.0 proc  web#2 exits 1 (Error)
00:16.0 why   container web is in back-off until 00:36.0
00:16.0 why   removes a dead container
00:16.0 state Running: web CrashLoopBackOff x2 after Error(1)
00:16.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:16.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:16.0 call  RemoveContainer web#1
00:36.0 why   starts container web: it exited with code 1
00:36.0 call  CreateContainer web#3
00:36.0 call  StartContainer web#3
00:36.0 why   everything runs as specified
00:36.0 state Running: web Running x3
00:36.0 cond  Ready True
00:38.0 proc  web#3 exits 1 (Error)
00:38.0 why   container web is in back-off until 01:18.0
00:38.0 why   removes a dead container
00:38.0 state Running: web CrashLoopBackOff x3 after Error(1)
00:38.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:38.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:38.0 call  RemoveContainer web#2
01:18.0 why   starts container web: it exited with code 1
01:18.0 call  CreateContainer web#4
01:18.0 call  StartContainer web#4
01:18.0 why   everything runs as specified
01:18.0 state Running: web Running x4
01:18.0 cond  Ready True
01:20.0 proc  web#4 exits 1 (Error)
01:20.0 why   container web is in back-off until 02:40.0
01:20.0 why   removes a dead container
01:20.0 state Running: web CrashLoopBackOff x4 after Error(1)
01:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
01:20.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
01:20.0 call  RemoveContainer web#3
