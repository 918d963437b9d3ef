A container that is restarted is not ready before its probe says so

pod web
  containers:
  - name: web
    image: app:1
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 5}

at 18s  command ready fails: warming up
at 18s  container web exits 1
at 28s  command ready passes
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
00:00.0 state Running: web Running (not ready)
00:00.0 probe Readiness of web#0: Success
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:18.0 then  command ready fails: warming up
00:18.0 then  container web exits 1
00:18.0 proc  web#0 exits 1 (Error)
00:18.0 why   starts container web: it exited with code 1
00:18.0 state Running: web Error(1)
00:18.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:18.0 call  CreateContainer web#1
00:18.0 call  StartContainer web#1
00:18.0 why   everything runs as specified
00:18.0 state Running: web Running (not ready) x1
00:18.0 event Warning Unhealthy web: Readiness probe failed: warming up
00:18.0 probe Readiness of web#1: Failure
00:23.0 event Warning Unhealthy web: Readiness probe failed: warming up
00:28.0 then  command ready passes
00:28.0 probe Readiness of web#1: Success
00:28.0 state Running: web Running x1
00:28.0 cond  Ready True
