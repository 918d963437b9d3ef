A container that never becomes live restarts with a back-off that doubles

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 2, failureThreshold: 1}

first  command alive fails: no heartbeat
until 35s
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
00:02.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:02.0 probe Liveness of web#0: Failure
00:02.0 why   stops container web: it failed its liveness probe
00:02.0 why   starts container web: the previous instance was unhealthy
00:02.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:02.0 call  StopContainer web#0, grace 30 s
00:02.0 proc  web#0 gets SIGTERM
00:02.0 proc  web#0 exits 143 (Error)
00:02.0 call  CreateContainer web#1
00:02.0 call  StartContainer web#1
00:02.0 why   everything runs as specified
00:02.0 state Running: web Running x1
00:04.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:04.0 probe Liveness of web#1: Failure
00:04.0 why   stops container web: it failed its liveness probe
00:04.0 why   starts container web: the previous instance was unhealthy
00:04.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:04.0 call  StopContainer web#1, grace 30 s
00:04.0 proc  web#1 gets SIGTERM
00:04.0 proc  web#1 exits 143 (Error)
00:04.0 call  CreateContainer web#2
00:04.0 call  StartContainer web#2
00:04.0 why   removes a dead container
00:04.0 state Running: web Running x2
00:04.0 call  RemoveContainer web#0
00:04.0 why   everything runs as specified
00:06.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:06.0 probe Liveness of web#2: Failure
00:06.0 why   stops container web: it failed its liveness probe
00:06.0 why   container web is in back-off until 00:14.0
00:06.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:06.0 call  StopContainer web#2, grace 30 s
00:06.0 proc  web#2 gets SIGTERM
00:06.0 proc  web#2 exits 143 (Error)
00:06.0 why   container web is in back-off until 00:16.0
00:06.0 why   removes a dead container
00:06.0 state Running: web CrashLoopBackOff x2 after Error(143)
00:06.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:06.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:06.0 call  RemoveContainer web#1
00:16.0 why   starts container web: it exited with code 143
00:16.0 call  CreateContainer web#3
00:16.0 call  StartContainer web#3
00:16.0 why   everything runs as specified
00:16.0 state Running: web Running x3
00:16.0 cond  Ready True
00:18.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:18.0 probe Liveness of web#3: Failure
00:18.0 why   stops container web: it failed its liveness probe
00:18.0 why   container web is in back-off until 00:26.0
00:18.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:18.0 call  StopContainer web#3, grace 30 s
00:18.0 proc  web#3 gets SIGTERM
00:18.0 proc  web#3 exits 143 (Error)
00:18.0 why   container web is in back-off until 00:38.0
00:18.0 why   removes a dead container
00:18.0 state Running: web CrashLoopBackOff x3 after Error(143)
00:18.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:18.0 event Warning BackOff web: Back-off restarting failed container web in pod web-n_default(UID)
00:18.0 call  RemoveContainer web#2
