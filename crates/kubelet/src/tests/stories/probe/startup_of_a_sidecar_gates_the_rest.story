The startup probe of a sidecar holds back what comes after it

pod web
  initContainers:
  - name: mesh
    image: app:1
    restartPolicy: Always
    startupProbe: {exec: {command: [up]}, periodSeconds: 2, failureThreshold: 30}
  containers:
  - {name: web, image: "app:1"}

first  command up fails: no certificate
at 9s  command up passes
until 20s
---
00:00.0 state Pending: mesh PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   waits for init container mesh to exit
00:00.0 state Pending: mesh Running (not started), web PodInitializing
00:02.0 event Warning Unhealthy mesh: Startup probe failed: no certificate
00:04.0 event Warning Unhealthy mesh: Startup probe failed: no certificate
00:06.0 event Warning Unhealthy mesh: Startup probe failed: no certificate
00:08.0 event Warning Unhealthy mesh: Startup probe failed: no certificate
00:09.0 then  command up passes
00:10.0 probe Startup of mesh#0: Success
00:10.0 why   starts container web: it has not run yet
00:10.0 state Pending: mesh Running, web PodInitializing
00:10.0 cond  Initialized True
00:10.0 call  CreateContainer web#0
00:10.0 call  StartContainer web#0
00:10.0 why   everything runs as specified
00:10.0 state Running: mesh Running, web Running
00:10.0 cond  Ready True
