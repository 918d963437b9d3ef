A container that can't be started does not hold up the one beside it

pod shop
  containers:
  - {name: broken, image: "app:1"}
  - {name: web, image: "app:1"}

first  container broken: can't be started: exec: "servr": executable file not found in $PATH
until 25s
---
00:00.0 state Pending: broken ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container broken: it has not run yet
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer broken#0
00:00.0 call  StartContainer broken#0
00:00.0 call  StartContainer broken#0 failed: StartContainer: exec: "servr": executable file not found in $PATH
00:00.0 event Warning Failed broken: Error: StartContainer: exec: "servr": executable file not found in $PATH
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   container broken is in back-off until 00:01.0
00:00.0 state Running: broken RunContainerError after StartError(128), web Running
00:01.0 why   starts container broken: it exited with code 128
00:01.0 call  CreateContainer broken#1
00:01.0 call  StartContainer broken#1
00:01.0 call  StartContainer broken#1 failed: StartContainer: exec: "servr": executable file not found in $PATH
00:01.0 event Warning Failed broken: Error: StartContainer: exec: "servr": executable file not found in $PATH
00:01.0 why   container broken is in back-off until 00:11.0
00:01.0 why   removes a dead container
00:01.0 state Running: broken CrashLoopBackOff x1 after StartError(128), web Running
00:01.0 event Warning BackOff broken: Back-off restarting failed container broken in pod shop-n_default(UID)
00:01.0 call  RemoveContainer broken#0
00:11.0 why   starts container broken: it exited with code 128
00:11.0 call  CreateContainer broken#2
00:11.0 call  StartContainer broken#2
00:11.0 call  StartContainer broken#2 failed: StartContainer: exec: "servr": executable file not found in $PATH
00:11.0 event Warning Failed broken: Error: StartContainer: exec: "servr": executable file not found in $PATH
00:11.0 why   container broken is in back-off until 00:31.0
00:11.0 why   removes a dead container
00:11.0 state Running: broken CrashLoopBackOff x2 after StartError(128), web Running
00:11.0 call  RemoveContainer broken#1
