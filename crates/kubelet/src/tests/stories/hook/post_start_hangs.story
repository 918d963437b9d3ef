A postStart hook hangs: the pod can still be removed

pod web
  containers:
  - name: web
    image: app:1
    lifecycle: {postStart: {exec: {command: [warm-up]}}}
  - {name: log, image: "app:1"}

first  command warm-up takes 10h
at 60s  manifest is removed
until 80s
---
00:00.0 state Pending: log ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 why   starts container log: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  ExecSync web#0, warm-up
01:00.0 then  manifest is removed
01:00.0 call  ExecSync web#0 was given up
01:00.0 why   no source defines the pod any more
01:00.0 why   stops container web: the pod terminates
01:00.0 state Pending, ends within 30 s: log ContainerCreating, web Running (not started)
01:00.0 event Normal Killing web: Stopping container web
01:00.0 call  StopContainer web#0, grace 30 s
01:00.0 proc  web#0 gets SIGTERM
01:00.0 proc  web#0 exits 143 (Error)
01:00.0 call  StopPodSandbox 0
01:00.0 state Pending, ends within 30 s: log ContainerCreating, web Error(143)
01:00.0 cond  PodReadyToStartContainers False
01:00.0 call  RemoveContainer web#0
01:00.0 call  RemovePodSandbox 0
01:00.0 gone  nothing is left of the pod
