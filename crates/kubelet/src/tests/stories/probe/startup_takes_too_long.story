A container that does not start in time is restarted, and finally succeeds

pod web
  containers:
  - name: web
    image: app:1
    startupProbe: {exec: {command: [up]}, periodSeconds: 5, failureThreshold: 3}

first  command up fails: still loading
at 16s  command up passes
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
00:00.0 state Running: web Running (not started)
00:05.0 event Warning Unhealthy web: Startup probe failed: still loading
00:10.0 event Warning Unhealthy web: Startup probe failed: still loading
00:15.0 event Warning Unhealthy web: Startup probe failed: still loading
00:15.0 probe Startup of web#0: Failure
00:15.0 why   stops container web: it failed its startup probe
00:15.0 why   starts container web: the previous instance was unhealthy
00:15.0 event Normal Killing web: Container web failed startup probe, will be restarted
00:15.0 call  StopContainer web#0, grace 30 s
00:15.0 proc  web#0 gets SIGTERM
00:15.0 proc  web#0 exits 143 (Error)
00:15.0 call  CreateContainer web#1
00:15.0 call  StartContainer web#1
00:15.0 why   everything runs as specified
00:15.0 state Running: web Running (not started) x1
00:16.0 then  command up passes
00:20.0 probe Startup of web#1: Success
00:20.0 state Running: web Running x1
00:20.0 cond  Ready True
