A pod with a readiness gate is ready when its containers are and the gate is open

pod web
  readinessGates: [{conditionType: example.org/lb}]
  containers:
  - {name: web, image: "app:1"}

at 20s  operator sets example.org/lb False
at 30s  operator sets example.org/lb True
at 40s  agent dies and starts
at 50s  operator sets example.org/lb False
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
00:00.0 cond  Ready False, ReadinessGatesNotReady: corresponding condition of pod readiness gate "example.org/lb" does not exist.
00:00.0 cond  ContainersReady True
00:20.0 then  operator sets example.org/lb False
00:20.0 cond  example.org/lb False
00:20.0 cond  Ready False, ReadinessGatesNotReady: the status of pod readiness gate "example.org/lb" is not "True", but False
00:30.0 then  operator sets example.org/lb True
00:30.0 cond  example.org/lb True
00:30.0 cond  Ready True
00:40.0 then  agent dies and starts
00:40.0 why   everything runs as specified
00:50.0 then  operator sets example.org/lb False
00:50.0 cond  example.org/lb False
00:50.0 cond  Ready False, ReadinessGatesNotReady: the status of pod readiness gate "example.org/lb" is not "True", but False
