A container counts as started once its postStart hook has completed

pod web
  containers:
  - name: web
    image: app:1
    lifecycle: {postStart: {exec: {command: [warm-up]}}}

first  command warm-up takes 5s
until 10s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  ExecSync web#0, warm-up
00:05.0 call  ExecSync web#0 took 5 s
00:05.0 why   everything runs as specified
00:05.0 state Running: web Running
00:05.0 cond  Ready True
