The agent dies while a postStart hook runs: the next agent runs it again

pod web
  containers:
  - name: web
    image: app:1
    lifecycle: {postStart: {exec: {command: [warm-up]}}}

first  command warm-up takes 5s
at 2s  agent dies
at 10s  agent starts
until 20s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  ExecSync web#0, warm-up
00:02.0 then  agent dies
00:02.0 call  ExecSync web#0 was given up
00:10.0 then  agent starts
00:10.0 why   runs the postStart hook of container web again: the agent stopped before it ended
00:10.0 state Running: web Running (not started)
00:10.0 call  ExecSync web#0, warm-up
00:15.0 call  ExecSync web#0 took 5 s
00:15.0 why   everything runs as specified
00:15.0 state Running: web Running
00:15.0 cond  Ready True
