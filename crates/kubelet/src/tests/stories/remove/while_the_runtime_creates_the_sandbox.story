A pod is removed while its sandbox is being created; the runtime completes the call, and the sandbox is removed too

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime finishes abandoned calls
first  runtime takes 30s for RunPodSandbox
at 10s  manifest is removed
until 60s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:10.0 then  manifest is removed
00:10.0 call  RunPodSandbox 0 was given up
00:10.0 gone  nothing is left of the pod
00:15.0 why   no source defines the pod any more
00:15.0 call  StopPodSandbox 0
00:15.0 call  RemovePodSandbox 0
00:15.0 gone  nothing is left of the pod
