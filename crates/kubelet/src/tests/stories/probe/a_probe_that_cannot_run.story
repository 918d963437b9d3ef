The runtime can't run the probe's command: that says nothing about the container

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, failureThreshold: 1}

at 20s  runtime fails ExecSync: too many open files
at 40s  runtime works again
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
00:20.0 then  runtime fails ExecSync: too many open files
00:20.0 event Warning Unhealthy web: Liveness probe errored and resulted in unknown state: ExecSync: too many open files
00:25.0 event Warning Unhealthy web: Liveness probe errored and resulted in unknown state: ExecSync: too many open files
00:30.0 event Warning Unhealthy web: Liveness probe errored and resulted in unknown state: ExecSync: too many open files
00:35.0 event Warning Unhealthy web: Liveness probe errored and resulted in unknown state: ExecSync: too many open files
00:40.0 then  runtime works again
