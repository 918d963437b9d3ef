A probe does not run before its initial delay is over

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, initialDelaySeconds: 30, periodSeconds: 5, failureThreshold: 1}

first  command alive fails: no heartbeat
at 20s  command alive passes
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
00:20.0 then  command alive passes
