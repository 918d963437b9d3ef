A hung container does not get the long grace period of the pod, but that of its liveness probe

pod web
  terminationGracePeriodSeconds: 600
  containers:
  - name: web
    image: app:1
    livenessProbe:
      {exec: {command: [alive]}, periodSeconds: 5, failureThreshold: 1, terminationGracePeriodSeconds: 3}

first  container web: runs, ignores SIGTERM
at 18s  command alive fails: no heartbeat
at 21s  command alive passes
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
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:18.0 then  command alive fails: no heartbeat
00:20.0 event Warning Unhealthy web: Liveness probe failed: no heartbeat
00:20.0 probe Liveness of web#0: Failure
00:20.0 why   stops container web: it failed its liveness probe
00:20.0 why   starts container web: the previous instance was unhealthy
00:20.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:20.0 call  StopContainer web#0, grace 3 s
00:20.0 proc  web#0 gets SIGTERM
00:21.0 then  command alive passes
00:23.0 proc  web#0 exits 137 (Error)
00:23.0 call  CreateContainer web#1
00:23.0 call  StartContainer web#1
00:23.0 why   everything runs as specified
00:23.0 state Running: web Running x1
