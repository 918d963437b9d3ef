A container fails its liveness probe three times in a row: it is restarted

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5}

first  container web: runs, ends 2s after SIGTERM
at 18s  command alive fails: no heartbeat
at 31s  command alive passes
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
00:18.0 then  command alive fails: no heartbeat
00:20.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:25.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:30.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:30.0 probe Liveness of web#0: Failure
00:30.0 why   stops container web: it failed its liveness probe
00:30.0 why   starts container web: the previous instance was unhealthy
00:30.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:30.0 call  StopContainer web#0, grace 30 s
00:30.0 proc  web#0 gets SIGTERM
00:31.0 then  command alive passes
00:32.0 proc  web#0 exits 143 (Error)
00:32.0 call  CreateContainer web#1
00:32.0 call  StartContainer web#1
00:32.0 why   everything runs as specified
00:32.0 state Running: web Running x1
