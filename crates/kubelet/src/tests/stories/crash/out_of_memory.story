A container that the kernel kills for its memory is reported as OOMKilled

pod web
  containers:
  - {name: web, image: "app:1"}

at 10s  container web runs out of memory
at 15s  container web runs out of memory
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
00:10.0 then  container web runs out of memory
00:10.0 proc  web#0 exits 137 (OOMKilled)
00:10.0 why   starts container web: it exited with code 137
00:10.0 state Running: web OOMKilled(137)
00:10.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:10.0 call  CreateContainer web#1
00:10.0 call  StartContainer web#1
00:10.0 why   everything runs as specified
00:10.0 state Running: web Running x1
00:10.0 cond  Ready True
00:15.0 then  container web runs out of memory
00:15.0 proc  web#1 exits 137 (OOMKilled)
00:15.0 why   container web is in back-off until 00:25.0
00:15.0 why   removes a dead container
00:15.0 state Running: web CrashLoopBackOff x1 after OOMKilled(137)
00:15.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:15.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:15.0 call  RemoveContainer web#0
