A server that answers with an error, and then not at all, is restarted

pod web
  containers:
  - name: web
    image: app:1
    livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 5}

first  container web: runs, ends 2s after SIGTERM
at 18s  network fails: HTTP probe failed with statuscode: 500
at 28s  network hangs
at 32s  network answers
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
00:18.0 then  network fails: HTTP probe failed with statuscode: 500
00:20.0 event Warning Unhealthy web: Liveness probe failed: HTTP probe failed with statuscode: 500
00:25.0 event Warning Unhealthy web: Liveness probe failed: HTTP probe failed with statuscode: 500
00:28.0 then  network hangs
00:31.0 event Warning Unhealthy web: Liveness probe failed: context deadline exceeded
00:31.0 probe Liveness of web#0: Failure
00:31.0 why   stops container web: it failed its liveness probe
00:31.0 why   starts container web: the previous instance was unhealthy
00:31.0 event Normal Killing web: Container web failed liveness probe, will be restarted
00:31.0 call  StopContainer web#0, grace 30 s
00:31.0 proc  web#0 gets SIGTERM
00:32.0 then  network answers
00:33.0 proc  web#0 exits 143 (Error)
00:33.0 call  CreateContainer web#1
00:33.0 call  StartContainer web#1
00:33.0 why   everything runs as specified
00:33.0 state Running: web Running x1
