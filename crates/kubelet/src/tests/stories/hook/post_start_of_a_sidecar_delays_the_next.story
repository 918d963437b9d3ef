The containers after a sidecar wait for its postStart hook

pod web
  initContainers:
  - name: mesh
    image: app:1
    restartPolicy: Always
    lifecycle: {postStart: {exec: {command: [warm-up]}}}
  containers:
  - {name: web, image: "app:1"}

first  command warm-up takes 5s
until 10s
---
00:00.0 state Pending: mesh PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 call  ExecSync mesh#0, warm-up
00:05.0 call  ExecSync mesh#0 took 5 s
00:05.0 why   starts container web: it has not run yet
00:05.0 state Pending: mesh Running, web PodInitializing
00:05.0 cond  Initialized True
00:05.0 call  CreateContainer web#0
00:05.0 call  StartContainer web#0
00:05.0 why   everything runs as specified
00:05.0 state Running: mesh Running, web Running
00:05.0 cond  Ready True
