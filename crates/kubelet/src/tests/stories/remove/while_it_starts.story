A pod is removed while its sandbox is being created

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime takes 60s for RunPodSandbox
at 10s  manifest is removed
until 80s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:10.0 then  manifest is removed
00:10.0 call  RunPodSandbox 0 was given up
00:10.0 gone  nothing is left of the pod
