public import Broker
public import EventLoop

extension EventLoop: BrokerLoop {}
