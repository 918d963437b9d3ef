The agent is killed: ready containers stay ready, also before the first probe

pod web
  containers:
  - name: web
    image: app:1
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 10}

at 30s  agent dies
at 40s  agent starts
until 80s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: web Running (not ready)
00:00.0 probe Readiness of web#0: Success
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:30.0 then  agent dies
00:40.0 then  agent starts
00:40.0 why   everything runs as specified
