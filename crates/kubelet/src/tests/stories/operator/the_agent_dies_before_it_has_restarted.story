A requested restart is not lost when the agent dies

pod web
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ends 10s after SIGTERM
at 20s  operator restarts web
at 22s  agent dies
at 25s  agent starts
until 60s
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
00:20.0 then  operator restarts web
00:20.0 why   stops container web: an operator requested a restart
00:20.0 why   starts container web: an operator requested it
00:20.0 event Normal Killing web: Container web is restarted on request
00:20.0 call  StopContainer web#0, grace 30 s
00:20.0 proc  web#0 gets SIGTERM
00:22.0 then  agent dies
00:22.0 call  StopContainer web#0 was given up
00:25.0 then  agent starts
00:25.0 why   stops container web: an operator requested a restart
00:25.0 why   starts container web: an operator requested it
00:25.0 event Normal Killing web: Container web is restarted on request
00:25.0 call  StopContainer web#0, grace 30 s
00:30.0 proc  web#0 exits 143 (Error)
00:30.0 call  CreateContainer web#1
00:30.0 call  StartContainer web#1
00:30.0 why   everything runs as specified
00:30.0 state Running: web Running x1
