A postStart hook fails: its container is stopped and restarted

pod web
  containers:
  - name: web
    image: app:1
    lifecycle: {postStart: {exec: {command: [warm-up]}}}

first  command warm-up fails: no license
at 500ms  command warm-up passes
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
00:00.0 event Warning FailedPostStartHook web: PostStartHook failed
00:00.0 event Normal Killing web: FailedPostStartHook
00:00.0 call  StopContainer web#0, grace 30 s
00:00.0 proc  web#0 gets SIGTERM
00:00.0 proc  web#0 exits 143 (Error)
00:00.0 why   container web is in back-off until 00:01.0
00:00.0 state Running: web PostStartHookError after Error(143)
00:00.5 then  command warm-up passes
00:01.0 why   starts container web: it exited with code 143
00:01.0 call  CreateContainer web#1
00:01.0 call  StartContainer web#1
00:01.0 call  ExecSync web#1, warm-up
00:01.0 why   everything runs as specified
00:01.0 state Running: web Running x1
00:01.0 cond  Ready True
