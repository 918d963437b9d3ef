A container stops being ready while no agent runs: the next agent finds out by its probe

pod web
  containers:
  - name: web
    image: app:1
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 10, failureThreshold: 1}

at 30s  agent dies
at 31s  command ready fails: overloaded
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
00:31.0 then  command ready fails: overloaded
00:40.0 then  agent starts
00:40.0 why   everything runs as specified
00:41.2 event Warning Unhealthy web: Readiness probe failed: overloaded
00:41.2 probe Readiness of web#0: Failure
00:41.2 state Running: web Running (not ready)
00:41.2 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:51.2 event Warning Unhealthy web: Readiness probe failed: overloaded
01:01.2 event Warning Unhealthy web: Readiness probe failed: overloaded
01:11.2 event Warning Unhealthy web: Readiness probe failed: overloaded
