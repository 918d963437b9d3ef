Readiness takes traffic away and gives it back; the container is left alone

pod web
  containers:
  - name: web
    image: app:1
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 5, failureThreshold: 2}

first  command ready fails: warming up
at 8s  command ready passes
at 30s  command ready fails: overloaded
at 50s  command ready passes
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
00:00.0 state Running: web Running (not ready)
00:00.0 event Warning Unhealthy web: Readiness probe failed: warming up
00:00.0 probe Readiness of web#0: Failure
00:05.0 event Warning Unhealthy web: Readiness probe failed: warming up
00:08.0 then  command ready passes
00:10.0 probe Readiness of web#0: Success
00:10.0 state Running: web Running
00:10.0 cond  Ready True
00:30.0 then  command ready fails: overloaded
00:30.0 event Warning Unhealthy web: Readiness probe failed: overloaded
00:35.0 event Warning Unhealthy web: Readiness probe failed: overloaded
00:35.0 probe Readiness of web#0: Failure
00:35.0 state Running: web Running (not ready)
00:35.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:40.0 event Warning Unhealthy web: Readiness probe failed: overloaded
00:45.0 event Warning Unhealthy web: Readiness probe failed: overloaded
00:50.0 then  command ready passes
00:50.0 probe Readiness of web#0: Success
00:50.0 state Running: web Running
00:50.0 cond  Ready True
