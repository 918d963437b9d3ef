The agent was starved while a probe ran: that does not count against the container

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 10, failureThreshold: 1}

at 15s  command alive takes 900ms
at 20200ms  agent is starved for 30s
at 70s  command alive passes
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
00:15.0 then  command alive takes 900ms
00:20.2 then  agent is starved for 30s
01:10.0 then  command alive passes
