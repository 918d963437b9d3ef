Pods wait for the node's network; those on the host's network do not

pod web
  containers:
  - {name: web, image: "app:1"}

pod proxy
  hostNetwork: true
  containers:
  - {name: proxy, image: "app:1"}

first  runtime has no network
at 10s  runtime has a network
until 25s
---
00:00.0 state [web] Pending: web ContainerCreating
00:00.0 why   [web] the pod has no sandbox
00:00.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:00.0 why   [web] creating the sandbox failed; next attempt at 00:01.0
00:00.0 state [proxy] Pending: proxy ContainerCreating
00:00.0 why   [proxy] the pod has no sandbox
00:00.0 call  [proxy] RunPodSandbox 0
00:00.0 why   [proxy] starts container proxy: it has not run yet
00:00.0 cond  [proxy] PodReadyToStartContainers True
00:00.0 call  [proxy] CreateContainer proxy#0
00:00.0 call  [proxy] StartContainer proxy#0
00:00.0 why   [proxy] everything runs as specified
00:00.0 state [proxy] Running: proxy Running
00:00.0 cond  [proxy] Ready True
00:01.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:01.0 why   [web] creating the sandbox failed; next attempt at 00:02.0
00:02.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:02.0 why   [web] creating the sandbox failed; next attempt at 00:03.0
00:03.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:03.0 why   [web] creating the sandbox failed; next attempt at 00:04.0
00:04.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:04.0 why   [web] creating the sandbox failed; next attempt at 00:05.0
00:05.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:05.0 why   [web] creating the sandbox failed; next attempt at 00:06.0
00:06.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:06.0 why   [web] creating the sandbox failed; next attempt at 00:07.0
00:07.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:07.0 why   [web] creating the sandbox failed; next attempt at 00:08.0
00:08.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:08.0 why   [web] creating the sandbox failed; next attempt at 00:09.0
00:09.0 event [web] Warning NetworkNotReady network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized
00:09.0 why   [web] creating the sandbox failed; next attempt at 00:10.0
00:10.0 then  runtime has a network
00:10.0 call  [web] RunPodSandbox 0
00:10.0 why   [web] starts container web: it has not run yet
00:10.0 cond  [web] PodReadyToStartContainers True
00:10.0 call  [web] CreateContainer web#0
00:10.0 call  [web] StartContainer web#0
00:10.0 why   [web] everything runs as specified
00:10.0 state [web] Running: web Running
00:10.0 cond  [web] Ready True
