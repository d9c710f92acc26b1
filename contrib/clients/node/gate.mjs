/** Limits the number of concurrent calls. */
export class Gate {
  #free; #queue = []

  constructor(count) { this.#free = count }

  async pass(signal, work) {
    if (this.#free > 0) this.#free--
    else await this.#wait(signal)
    try {
      return await work()
    } finally {
      const next = this.#queue.shift()
      if (next) next()
      else this.#free++
    }
  }

  #wait(signal) {
    return new Promise((resolve, reject) => {
      this.#queue.push(resolve)
      signal.addEventListener('abort', () => {
        const place = this.#queue.indexOf(resolve)
        if (place >= 0) this.#queue.splice(place, 1)
        reject(signal.reason)
      }, { once: true })
    })
  }
}
