Nothing is started while a volume can't be mounted; then the pod starts

pod web
  containers:
  - {name: web, image: "app:1"}

first  host can't prepare the pod: MountVolume.SetUp failed for volume "data": not a directory
at 10s  host can prepare the pod
until 20s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 event Warning FailedMount MountVolume.SetUp failed for volume "data": not a directory
00:00.0 why   creating the sandbox failed; next attempt at 00:01.0
00:01.0 event Warning FailedMount MountVolume.SetUp failed for volume "data": not a directory
00:01.0 why   creating the sandbox failed; next attempt at 00:03.0
00:03.0 event Warning FailedMount MountVolume.SetUp failed for volume "data": not a directory
00:03.0 why   creating the sandbox failed; next attempt at 00:07.0
00:07.0 event Warning FailedMount MountVolume.SetUp failed for volume "data": not a directory
00:07.0 why   creating the sandbox failed; next attempt at 00:15.0
00:10.0 then  host can prepare the pod
00:15.0 call  RunPodSandbox 0
00:15.0 why   starts container web: it has not run yet
00:15.0 cond  PodReadyToStartContainers True
00:15.0 call  CreateContainer web#0
00:15.0 call  StartContainer web#0
00:15.0 why   everything runs as specified
00:15.0 state Running: web Running
00:15.0 cond  Ready True
