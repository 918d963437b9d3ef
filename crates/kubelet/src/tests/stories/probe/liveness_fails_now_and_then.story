Failures below the threshold change nothing

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5}

at 20s  command alive fails: no heartbeat
at 28s  command alive passes
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
00:20.0 then  command alive fails: no heartbeat
00:20.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:25.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:28.0 then  command alive passes
