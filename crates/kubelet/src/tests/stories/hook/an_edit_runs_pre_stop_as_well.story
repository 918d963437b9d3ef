A container that is replaced after an edit runs its preStop hook too

pod web
  containers:
  - name: web
    image: app:1
    lifecycle: {preStop: {exec: {command: [drain]}}}

first  command drain takes 3s
at 20s  edit: app:1 -> app:2
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
00:20.0 then  edit: app:1 -> app:2
00:20.0 why   stops container web: its definition changed
00:20.0 why   starts container web: its definition changed
00:20.0 event Normal Killing web: Container web definition changed, will be restarted
00:20.0 call  ExecSync web#0, drain
00:23.0 call  ExecSync web#0 took 3 s
00:23.0 call  StopContainer web#0, grace 27 s
00:23.0 proc  web#0 gets SIGTERM
00:23.0 proc  web#0 exits 143 (Error)
00:23.0 call  CreateContainer web#1
00:23.0 call  StartContainer web#1
00:23.0 why   everything runs as specified
00:23.0 state Running: web Running x1
