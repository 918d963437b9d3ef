With restartPolicy Always a container that exited with 0 is restarted as well

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: exits 0 after 5s
until 20s
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
00:05.0 proc  web#0 exits 0 (Completed)
00:05.0 why   starts container web: it exited with code 0
00:05.0 state Running: web Completed(0)
00:05.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:05.0 call  CreateContainer web#1
00:05.0 call  StartContainer web#1
00:05.0 why   everything runs as specified
00:05.0 state Running: web Running x1
00:05.0 cond  Ready True
00:10.0 proc  web#1 exits 0 (Completed)
00:10.0 why   container web is in back-off until 00:20.0
00:10.0 why   removes a dead container
00:10.0 state Running: web CrashLoopBackOff x1 after Completed(0)
00:10.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:10.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:10.0 call  RemoveContainer web#0
