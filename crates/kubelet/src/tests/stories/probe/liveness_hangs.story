A liveness probe that does not answer within its timeout has failed

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 2}

first  container web: runs, ends 2s after SIGTERM
at 18s  command alive takes 60s
at 28s  command alive passes
until 50s
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
00:18.0 then  command alive takes 60s
00:22.0 event Warning Unhealthy web: Liveness probe failed: command timed out: "alive" timed out after 2s
00:27.0 event Warning Unhealthy web: Liveness probe failed: command timed out: "alive" timed out after 2s
00:27.0 probe Liveness of web#0: Failure
00:27.0 why   stops container web: it failed its liveness probe
00:27.0 why   starts container web: the previous instance was unhealthy
00:27.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:27.0 call  StopContainer web#0, grace 30 s
00:27.0 proc  web#0 gets SIGTERM
00:28.0 then  command alive passes
00:29.0 proc  web#0 exits 143 (Error)
00:29.0 call  CreateContainer web#1
00:29.0 call  StartContainer web#1
00:29.0 why   everything runs as specified
00:29.0 state Running: web Running x1
