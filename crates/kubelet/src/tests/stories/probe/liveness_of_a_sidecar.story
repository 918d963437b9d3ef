A sidecar fails its liveness probe: it is restarted, the container beside it is left alone

pod web
  initContainers:
  - name: mesh
    image: app:1
    restartPolicy: Always
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, failureThreshold: 1}
  containers:
  - {name: web, image: "app:1"}

first  container mesh: runs, ends 3s after SIGTERM
at 18s  command alive fails: no heartbeat
at 21s  command alive passes
until 40s
---
00:00.0 state Pending: mesh PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   starts container web: it has not run yet
00:00.0 state Pending: mesh Running, web PodInitializing
00:00.0 cond  Initialized True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: mesh Running, web Running
00:00.0 cond  Ready True
00:18.0 then  command alive fails: no heartbeat
00:20.0 event Warning Unhealthy mesh: Liveness probe failed: no heartbeat
00:20.0 probe Liveness of mesh#0: Failure
00:20.0 why   stops container mesh: it failed its liveness probe
00:20.0 why   starts container mesh: the previous instance was unhealthy
00:20.0 event Normal Killing mesh: Container mesh failed liveness probe, will be restarted
00:20.0 call  StopContainer mesh#0, grace 30 s
00:20.0 proc  mesh#0 gets SIGTERM
00:21.0 then  command alive passes
00:23.0 proc  mesh#0 exits 143 (Error)
00:23.0 call  CreateContainer mesh#1
00:23.0 call  StartContainer mesh#1
00:23.0 why   everything runs as specified
00:23.0 state Running: mesh Running x1, web Running
