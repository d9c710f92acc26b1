public import Broker
public import EventLoop

extension EventLoop: BrokerLoop {
    public var turnTimes: TurnTimes {
        TurnTimes(bounds: TurnFigures.boundsMilliseconds, counts: turns.counts, longest: turns.longest)
    }
}
