// A page opened from a folder may not start a worker: the search of the site then runs in a hidden frame.
// (The name tells the offline plugin that it need not fetch a script for this from elsewhere.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const scope = frame.contentWindow
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = scope.document.createElement("script")
      const loaded = new Promise(done => script.addEventListener("load", done))
      this.postMessage = data => loaded.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })))
      this.terminate = () => frame.remove()
      script.src = url
      scope.document.body.append(script)
    }
  }
}
