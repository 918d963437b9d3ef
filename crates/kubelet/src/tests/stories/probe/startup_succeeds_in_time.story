Liveness and readiness wait for the startup probe

pod web
  containers:
  - name: web
    image: app:1
    startupProbe: {exec: {command: [up]}, periodSeconds: 5, failureThreshold: 10}
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, failureThreshold: 1}
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 5}

first  command up fails: still loading
first  command alive fails: still loading
at 18s  command alive passes
at 18s  command up passes
until 40s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: web Running (not started)
00:05.0 event Warning Unhealthy web: Startup probe failed: still loading
00:10.0 event Warning Unhealthy web: Startup probe failed: still loading
00:15.0 event Warning Unhealthy web: Startup probe failed: still loading
00:18.0 then  command alive passes
00:18.0 then  command up passes
00:20.0 probe Startup of web#0: Success
00:20.0 state Running: web Running (not ready)
00:20.0 probe Readiness of web#0: Success
00:20.0 state Running: web Running
00:20.0 cond  Ready True
