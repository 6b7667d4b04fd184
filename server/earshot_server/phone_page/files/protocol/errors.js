export class EarshotError extends Error {
    get name() {
        return this.constructor.name;
    }
}
export class LocalError extends EarshotError {
}
export class RemoteError extends EarshotError {
}
export class InvalidParametersError extends LocalError {
}
export class InvalidInputError extends LocalError {
}
export class WrongStateError extends LocalError {
}
export class MalformedMessageError extends RemoteError {
}
export class UnexpectedMessageError extends RemoteError {
}
export class RepeatedMessageError extends RemoteError {
}
export class RefusedError extends RemoteError {
    rule;
    constructor(message, rule = "protocol") {
        super(message);
        this.rule = rule;
    }
}
